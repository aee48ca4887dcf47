from discreet.tables.gauss.elimination import Elimination as Elimination
from discreet.tables.gauss.elimination import Reason as Reason
from discreet.tables.gauss.elimination import secondary as secondary
