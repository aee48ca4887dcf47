"""What is dropped on the page is copied to the private folder: whole, or nothing of it stays."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from discreet.app.desk import Desk
from discreet.core.errors import InputError


async def kept_copy(desk: Desk, file: Any) -> Path:
    """Copy an upload to the private folder and return where it lies; a full disk is refused with a sentence."""
    place = desk.folder.place_for(file.name)
    try:
        if file.size() > shutil.disk_usage(desk.folder.path).free:
            raise InputError("There is not enough room on the disk for a copy. Point to the file instead.")
        await file.save(place)
    except (InputError, OSError) as error:
        shutil.rmtree(place.parent, ignore_errors=True)
        if isinstance(error, InputError):
            raise
        raise InputError(
            "The copy could not be written; the disk may be full. Nothing is left of it. Point to the file instead."
        ) from error
    return place
