from discreet.register.history import History as History
from discreet.register.people_sketches import PeopleSketch as PeopleSketch
from discreet.register.people_sketches import people_sketch as people_sketch
from discreet.register.releases import Register as Register
