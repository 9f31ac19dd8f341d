"""What should leave a hot node, and where to.

`avg_shedder_usage.avg_shedder_usage` is Ballast's own: it levels scores in each node's own capacity and predicts them.
`strategies.shed` runs any of the strategies taken over from Pulsar by its name; `completion.completed` finds the
destinations of what they unload. All are functions of values: what they must remember is returned and passed in again.
"""
