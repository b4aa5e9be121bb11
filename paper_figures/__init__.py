"""The papers' figures, one file each: surrogate and validation side by side with what was
published. None is drawn yet."""
