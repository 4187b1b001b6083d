"""The agent: the loop that lets a model use tools, and the folder it works in."""
