from discreet.synth.private_marginals.aim import AIM as AIM
from discreet.synth.private_marginals.mst import MST as MST
