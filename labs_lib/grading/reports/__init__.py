"""What comes out: tables of marks, marks by hand, pages of feedback, what looks alike."""
