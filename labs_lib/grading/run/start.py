"""Start pytest without what it would load and never use; run as a script by `runner.py`.

jsonschema, which nbformat brings along, builds a whole grammar of internationalised addresses
when it is imported: two to three seconds for a format that no notebook uses.
"""

import sys

if __name__ == "__main__":
    sys.modules["rfc3987_syntax"] = None  # jsonschema then goes without that one format

    import pytest

    sys.exit(pytest.main(sys.argv[1:]))
