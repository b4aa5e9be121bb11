"""The command line: `onset predict`, `sweep`, `validate`, `report`."""
