"""The command line: `onset derive`, `laws`, `predict`, `solve`, `sweep`, `validate`, `report`."""
