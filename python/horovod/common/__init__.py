"""What the frameworks share: the job's context, errors, process sets, small helpers."""
