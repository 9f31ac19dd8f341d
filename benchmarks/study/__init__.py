"""What the benchmark `backtest` runs, in processes of their own."""
