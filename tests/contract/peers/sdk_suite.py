"""Runs the functional tests for bare metal that openstacksdk ships, against the clouds of OS_CLIENT_CONFIG_FILE.

usage: sdk_suite.py [NAME ...]    only tests with one of these in their name
"""
import os
import sys
import unittest

import openstack
from openstack.tests.functional import baremetal

here = os.path.dirname(baremetal.__file__)
top = os.path.dirname(os.path.dirname(openstack.__file__))
found = unittest.defaultTestLoader.discover(here, top_level_dir=top)


def tests(suite):
    """The single tests of a suite."""
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from tests(one)
        else:
            yield one


wanted = sys.argv[1:]
chosen = unittest.TestSuite(one for one in tests(found) if not wanted or any(name in one.id() for name in wanted))
ended = unittest.TextTestRunner(verbosity=2, stream=sys.stderr).run(chosen)
failed = len(ended.failures) + len(ended.errors) + len(ended.unexpectedSuccesses)
skipped = len(ended.skipped)
for one, why in ended.skipped:
    print(f'skipped: {one.id()}: {why}')
for one, _ in ended.failures + ended.errors:
    print(f'failed: {one.id()}')
print(f'{ended.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped')
sys.exit(failed > 0 or ended.testsRun == 0)
