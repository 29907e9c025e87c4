"""Full copies of a topology that run the same agreed epochs: what one of them loses, the others have."""
