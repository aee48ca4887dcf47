from discreet.hierarchy.algebra import Hierarchy as Hierarchy
