"""The incident recorder: the seconds around every halt, as a clip and a record that proves it."""
