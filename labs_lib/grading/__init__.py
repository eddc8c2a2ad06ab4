"""From a folder of submissions to marks: intake, transplant, sandbox, run, judge, report.

Each room uses only those named before it: `sandbox` (the fence), `run` (one notebook behind it),
`intake` (whose, which lab, which attempt), `reading` (answers, not run), `expected` (what checks
are to print), `judge`, `reports`, `batch` (many notebooks). `grade` is the door.
"""
