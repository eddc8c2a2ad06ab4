"""Start pytest without what it would load and never use; run as a script by `runner.py`.

jsonschema, which nbformat brings along, builds a whole grammar of internationalised addresses
when it is imported: two to three seconds for a format that no notebook uses.
"""

import sys

if __name__ == "__main__":
    # None: it can't be imported, and jsonschema goes without that one format.
    sys.modules["rfc3987_syntax"] = None  # ty: ignore[invalid-assignment]

    import pytest

    sys.exit(pytest.main(sys.argv[1:]))
