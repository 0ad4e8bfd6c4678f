"""Thumbnails of the gallery that can be read: of a picture with several panels, one panel."""

from pathlib import Path

from PIL import Image

# Left and right, top and bottom end of the panel, as parts of the picture.
_PANELS = {
    "convergence": (0.0, 0.52, 0.0, 1.0),
    "first_steps": (0.0, 0.36, 0.0, 1.0),
    "holes_and_coverage": (0.0, 0.34, 0.0, 1.0),
    "how_sure": (0.0, 0.635, 0.0, 1.0),
    "learned_metric": (0.5, 1.0, 0.0, 1.0),
    "many_outputs": (0.0, 0.5, 0.0, 1.0),
    "noisy_derivative": (0.35, 0.67, 0.0, 1.0),
    "ode": (0.0, 0.5, 0.0, 1.0),
    "own_local_models": (0.0, 0.5, 0.0, 1.0),
    "samples": (0.19, 0.38, 0.0, 1.0),
    "seams": (0.0, 0.5, 0.0, 0.46),
    "sphere": (0.0, 0.5, 0.0, 1.0),
    "strain_rate": (0.0, 0.52, 0.0, 1.0),
    "surrogate": (0.0, 0.48, 0.0, 1.0),
}


def crop_thumbnails(app):
    """Cut the panels out of the pictures that the examples drew."""
    images, size = Path(app.srcdir) / "gallery" / "images", app.config.sphinx_gallery_conf["thumbnail_size"]
    for name, (left, right, top, bottom) in _PANELS.items():
        drawn = images / f"sphx_glr_plot_{name}_001.png"
        if drawn.is_file():  # not if the examples were not run
            picture = Image.open(drawn).convert("RGB")
            width, height = picture.size
            panel = picture.crop((int(left * width), int(top * height), int(right * width), int(bottom * height)))
            panel.thumbnail(size, Image.Resampling.LANCZOS)
            page = Image.new("RGB", size, "white")
            page.paste(panel, ((size[0] - panel.width) // 2, (size[1] - panel.height) // 2))
            page.save(images / "thumb" / f"sphx_glr_plot_{name}_thumb.png")
