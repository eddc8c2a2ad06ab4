"""What a student's own copy of the course needs: check, progress, reset, submit, doctor, start."""
