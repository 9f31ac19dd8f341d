"""Where a sender's next message goes: near targets while they keep up, farther ones as far as capacity is lacking."""
