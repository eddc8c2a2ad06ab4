"""From a folder of submissions to marks: intake, transplant, sandbox, run, judge, report."""
