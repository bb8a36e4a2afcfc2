# SPDX-License-Identifier: LGPL-2.1-or-later
"""As much of PyTriton as pytriton_server.py uses."""
