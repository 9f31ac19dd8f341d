"""What keeps Ballast from working, or makes its moves expensive: pure checks over values, and their catalog."""
