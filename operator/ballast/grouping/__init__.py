"""Where a sender's next message goes: near targets while they keep up, farther ones when they don't.

The law is Apache Storm's `LoadAwareShuffleGrouping`, with Kubernetes' zone as a fifth scope.
"""
