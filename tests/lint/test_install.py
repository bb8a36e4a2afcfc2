# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is installed works where it lies, with nothing set and nothing built.
"""
import json
import os
import shutil
import subprocess
import sys

import pytest

BUILD = os.environ['SEEP_BUILD']


def output(*command, **more):
    return subprocess.run(command, check=True, text=True,
                          stdout=subprocess.PIPE, **more).stdout


@pytest.fixture(scope='module', name='prefix')
def install(tmp_path_factory):
    destination = str(tmp_path_factory.mktemp('installed'))
    output('meson', 'install', '-C', BUILD, '--no-rebuild', '--destdir',
           destination)
    options = json.loads(output('meson', 'introspect', '--buildoptions',
                                BUILD))
    prefix = next(o['value'] for o in options if o['name'] == 'prefix')
    return destination + prefix


@pytest.fixture(name='bare')
def environment():
    """No SEEP_* variable may help to find anything."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith('SEEP') and name != 'LD_PRELOAD'}


def pkg_config(prefix, *arguments):
    folders = [folder for folder, _, names in os.walk(prefix)
               if 'seep.pc' in names]
    assert len(folders) == 1
    return output('pkg-config', f'--define-variable=prefix={prefix}',
                  *arguments, 'seep',
                  env={**os.environ, 'PKG_CONFIG_PATH': folders[0]}).strip()


def test_the_installed_seep_tells_the_version(prefix, bare):
    version = json.loads(output('meson', 'introspect', '--projectinfo',
                                BUILD))['version']

    assert version in output(f'{prefix}/bin/seep', '--version', env=bare)
    assert pkg_config(prefix, '--modversion') == version


def test_the_installed_seep_finds_its_preload(prefix, bare, tmp_path):
    output(f'{prefix}/bin/seep', 'run', '-o', str(tmp_path / 'x.seep'),
           '--exact', '--', '/usr/bin/python3', '-c', 'pass', env=bare)

    assert os.path.getsize(tmp_path / 'x.seep') > 0


def test_the_installed_probe_stands_alone(prefix, tmp_path):
    assert 'seep probe' in output(f'{prefix}/bin/seep-probe', '--help', env={})
    assert 'contains no recordings' in output(
        f'{prefix}/bin/seep-probe', '--max-age', '1s', str(tmp_path), env={})


def test_the_known_patterns_are_installed(prefix):
    with open(f'{prefix}/share/seep/patterns.json', encoding='utf-8') as file:
        document = json.load(file)

    assert document['schema'] == 'seep-patterns/1'
    assert len(document['patterns']) >= 30
    assert os.path.isfile(f'{prefix}/share/man/man5/seep-patterns.5')


def test_the_python_package_is_installed(prefix, bare):
    code = 'import seep; seep.mark("x"); print(seep.recorded())'

    assert output('/usr/bin/python3', '-c', code, env={
        **bare, 'PYTHONPATH': f'{prefix}/share/seep/python'}) == 'False\n'
    assert os.path.isfile(f'{prefix}/share/man/man3/seep.3')


def test_the_completion_is_installed_and_asks_the_installed(prefix, bare):
    script = (f'source {prefix}/share/bash-completion/completions/seep; '
              f'COMP_WORDS=({prefix}/bin/seep rep); COMP_CWORD=1; '
              '_seep "$COMP_WORDS"; echo "${COMPREPLY[@]}"')

    assert output('bash', '--norc', '-c', script, env=bare) == 'report\n'


def test_pytest_finds_the_installed_plugin(prefix, bare, tmp_path):
    environment = {**bare, 'PYTHONPATH': f'{prefix}/share/seep/python'}
    command = [sys.executable, '-m', 'pytest', '-p', 'no:cacheprovider']

    assert 'limit_growth_per_call' in output(
        *command, '--markers', env=environment, cwd=tmp_path)
    assert os.path.isfile(f'{prefix}/share/man/man7/seep-pytest.7')


def test_pip_installs_the_plugin_without_a_network(prefix, bare, tmp_path):
    source = tmp_path / 'source'  # it builds where it is
    shutil.copytree(f'{prefix}/share/seep/python', source)
    pytest.importorskip('setuptools', minversion='61')
    pytest.importorskip('wheel')
    output(sys.executable, '-m', 'pip', 'install', '--no-index',
           '--no-build-isolation', '--no-deps', '--quiet', '--target',
           str(tmp_path / 'site'), str(source), env=bare)

    found, = (tmp_path / 'site').glob('seep-*/entry_points.txt')
    assert 'seep.pytest_plugin' in found.read_text()
    assert (tmp_path / 'site/seep/_gate_sites.py').is_file()
    assert (tmp_path / 'site/seep/_gate_verdict.py').is_file()


def test_pkg_config_names_the_preload(prefix):
    preload = pkg_config(prefix, '--variable=preload')

    assert os.path.isfile(preload)
    assert os.path.realpath(preload).startswith(os.path.realpath(prefix))


def test_the_installed_headers_compile(prefix, tmp_path):
    source = tmp_path / 'x.c'
    source.write_text('#include <seep/recording.h>\n'
                      '#include <seep/seep.h>\nint main(void)\n'
                      '{\n    return sizeof(struct seep_rec_header) == 0;\n'
                      '}\n')

    output('cc', '-std=c11', *pkg_config(prefix, '--cflags').split(),
           str(source), '-o', str(tmp_path / 'x'))
