"""What an instructor needs: releasing notebooks, handing out copies, and pages for reading."""
