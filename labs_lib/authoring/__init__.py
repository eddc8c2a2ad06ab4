"""What an instructor needs: releasing notebooks from their source, handing out copies, pages to read."""
