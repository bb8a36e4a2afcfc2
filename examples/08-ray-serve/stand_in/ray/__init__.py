# SPDX-License-Identifier: LGPL-2.1-or-later
"""As much of Ray as serve_app.py uses."""
