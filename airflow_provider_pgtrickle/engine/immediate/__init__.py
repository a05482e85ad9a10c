"""IMMEDIATE: stream tables that the writers of their sources maintain, each in its own transaction.

The capturing triggers see each statement's beginning and end. When the outermost one ends, `propagate` calls for each
stream table behind the changed sources, upstream first, the function that `maintain` has written for it: the algebra's
own difference, with the captured rows at hand, carried out by the statements of a refresh. `live` puts these functions
in place without stopping writers for the length of a fill, and takes them away again.
"""
