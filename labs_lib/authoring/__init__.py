"""What an instructor needs: releasing notebooks from their source, and handing out copies."""
