"""A backtest from end to end, on two days of a described cluster."""
