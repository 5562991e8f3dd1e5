import asyncio
import asyncpg
from sample import FIRST, ROWS
from steps import holds, report, same

connection = None


async def listed():
    rows = await connection.fetch("SELECT table_name FROM information_schema.tables WHERE table_schema = $1", "public")
    holds({row[0] for row in rows}, {"place", "sample", "named"})


async def reflected():
    statement = await connection.prepare("SELECT * FROM sample WHERE id = $1")
    same([kind.name for kind in statement.get_parameters()], ["int8"])
    same([(column.name, column.type.name) for column in statement.get_attributes()][:3], [("id", "int8"), ("flag", "bool"), ("small", "int2")])


async def read():
    rows = await connection.fetch("SELECT * FROM sample ORDER BY id")
    same([tuple(row) for row in rows], ROWS)


async def written():
    try:
        async with connection.transaction():
            await connection.execute("INSERT INTO place VALUES ($1, $2)", 1, "gone")
            raise KeyError
    except KeyError:
        pass
    async with connection.transaction():
        await connection.executemany("INSERT INTO place VALUES ($1, $2)", [(n, f"place {n}") for n in range(100)])
    same(await connection.fetchval("SELECT COUNT(*) FROM place"), 100)
    row = (10, *FIRST[1:])
    await connection.execute("INSERT INTO sample VALUES (" + ", ".join(f"${n}" for n in range(1, 15)) + ")", *row)
    same(tuple(await connection.fetchrow("SELECT * FROM sample WHERE id = $1", 10)), row)


async def copied():
    answer = await connection.copy_records_to_table("place", records=[(n, "copied") for n in range(200, 1200)], columns=["id", "name"])
    same(answer, "COPY 1000")
    parts = []

    async def take(part):
        parts.append(part)

    await connection.copy_from_query("SELECT id FROM place WHERE id < $1 ORDER BY id", 2, output=take, format="csv")
    same(b"".join(parts), b"0\n1\n")


async def streamed():
    async with connection.transaction():
        count = 0
        async for _ in connection.cursor("SELECT id FROM place ORDER BY id", prefetch=50):
            count += 1
        same(count, await connection.fetchval("SELECT COUNT(*) FROM place"))


async def refused():
    for statement, error in (
        ("SELECT nothing", asyncpg.UndefinedColumnError),
        ("SELECT 1 / 0", asyncpg.DivisionByZeroError),
        ("INSERT INTO sample (id, name) VALUES (1, 'a')", asyncpg.UniqueViolationError),
    ):
        try:
            await connection.fetch(statement)
        except error:
            pass
        else:
            raise AssertionError(f"{statement} works")


async def main():
    global connection
    connection = await asyncpg.connect(timeout=20, command_timeout=20)
    report("connect", True, asyncpg.__version__)
    for name, work in (
        ("list", listed),
        ("reflect", reflected),
        ("read", read),
        ("write", written),
        ("copy", copied),
        ("stream", streamed),
        ("error", refused),
    ):
        try:
            # What asyncpg asks about types has no deadline of its own.
            await asyncio.wait_for(work(), 20)
        except Exception as error:
            report(name, False, f"{type(error).__name__}: {error}")
        else:
            report(name, True)
    await connection.close()


asyncio.run(main())
