"""A student's answers, read without running them: put in place, searched for what is forbidden."""
