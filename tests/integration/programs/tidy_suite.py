# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of a service that belongs to a fixture; tidy_service.py runs them."""
import os

import pytest

from tidy_service import Service

TESTS = 40


@pytest.fixture(name="service", scope="session")
def service_fixture():
    service = Service(os.environ["TIDY_KIND"])
    yield service
    service.tell()


@pytest.mark.parametrize("number", range(TESTS))
def test_requests(service, number):
    service.serve(float(os.environ["TIDY_SECONDS"]) / TESTS)
    assert number < TESTS and service.spent > 0
