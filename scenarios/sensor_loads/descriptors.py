"""Descriptors of the sensors under test."""


def mean(name, device, window, slide="1", more=""):
    """The mean and the number of the elements of a window. `device` may be a pattern."""
    return toml(name, device, window, slide, "select avg(speed_kmh) as mean, count(*) as readings from input",
                "select speed_kmh from wrapper", {"mean": "double", "readings": "bigint"}, more)


def passing(name, device):
    """The mean of a minute with each element, and the field `sent` of the newest one."""
    return toml(name, device, "60s", "1", "select avg(celsius) as mean, max(sent) as sent from input",
                "select celsius, sent from wrapper", {"mean": "double", "sent": "bigint"})


def toml(name, device, window, slide, query, of_source, fields, more=""):
    lines = [f'name = "{name}"', more, "[processing-class]"]
    for field, kind in fields.items():
        lines += ["[[processing-class.output-structure.field]]", f'name = "{field}"', f'type = "{kind}"']
    lines += ["[[stream]]", 'name = "stream"', f'query = "{query}"', "[[stream.source]]", 'alias = "input"', f'storage-size = "{window}"',
              f'slide = "{slide}"', f'query = "{of_source}"', "[[stream.source.address]]", 'wrapper = "tacho"',
              "[stream.source.address.predicate]", f'device = "{device}"']
    return "\n".join(lines) + "\n"


def uploaded(name, fields, storage=""):
    """A sensor whose rows clients upload, in the form of the driver `gsn`; `storage` is its element of that name."""
    structure = "".join(f'<field name="f{field}" type="double"/>' for field in range(fields))
    names = ", ".join(f"f{field}" for field in range(fields))
    return f"""<virtual-sensor name="{name}">
  <processing-class><class-name>Bridge</class-name><output-structure>{structure}</output-structure></processing-class>
  {storage}
  <streams><stream name="input"><source alias="rows" storage-size="1" sampling-rate="1">
    <address wrapper="tacho"><predicate key="device">{name}_feed</predicate></address>
    <query>select {names}, timed from wrapper</query></source>
    <query>select {names}, timed from rows</query></stream></streams>
</virtual-sensor>
"""
