from discreet.core.files.atomic import (
    make_folder as make_folder,
)
from discreet.core.files.atomic import (
    replacing as replacing,
)
from discreet.core.files.atomic import (
    replacing_folder as replacing_folder,
)
from discreet.core.files.atomic import (
    replacing_together as replacing_together,
)
from discreet.io.reading import options_for as options_for
from discreet.io.reading import read as read
from discreet.io.sidecar import (
    load_roles as load_roles,
)
from discreet.io.sidecar import (
    load_sidecar as load_sidecar,
)
from discreet.io.sidecar import (
    save_roles as save_roles,
)
from discreet.io.sidecar import (
    sidecar_path as sidecar_path,
)
from discreet.io.writing import write as write
from discreet.io.writing import write_parts as write_parts
from discreet.io.writing import write_together as write_together
