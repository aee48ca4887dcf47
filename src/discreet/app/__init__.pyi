from discreet.app.journey import Journey as Journey
from discreet.app.serving import serve as serve
