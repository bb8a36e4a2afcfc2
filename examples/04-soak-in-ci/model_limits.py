# SPDX-License-Identifier: LGPL-2.1-or-later
"""Limits on the model itself: pytest --seep model_limits.py.

LEAK=1 lets it keep answers, as soak.py --leak does.
"""
import os

import pytest

from model_server import Model


@pytest.fixture(name='model', scope='module')
def model_fixture():
    return Model(keeps_answers=os.environ.get('LEAK') == '1')


@pytest.mark.limit_growth_per_call('64 B', calls=50)
def test_an_answer_leaves_nothing(model):
    assert len(model.predict('a text of some words')) > 2
