# SPDX-License-Identifier: LGPL-2.1-or-later
"""Deployments: a class, its options, and what it is bound to."""


class Application:
    def __init__(self, deployment, arguments):
        self.deployment, self.arguments = deployment, arguments


class Deployment:
    def __init__(self, cls, options):
        self.cls, self.options = cls, options

    def bind(self, *arguments):
        return Application(self, arguments)


def deployment(**options):
    return lambda cls: Deployment(cls, options)
