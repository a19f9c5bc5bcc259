"""The durable functions of python.test.ts."""

import logging
import os

from aws_durable_execution_sdk_python import DurableContext, durable_execution
from aws_durable_execution_sdk_python.config import Duration
from holdfast import Holdfast, HoldfastError
from holdfast.durable import rate, with_lease

client = Holdfast(os.environ["HOLDFAST_ENDPOINT"], holder="durable")
replays = 0
logging.disable()  # the SDK prints the error of each execution that fails


def pause(ctx: DurableContext) -> None:
    ctx.wait(Duration.from_seconds(1), name="pause")


def steps(event: dict, ctx: DurableContext):
    def work(lease):
        first = ctx.step(lambda _: lease.fence, name="one")
        pause(ctx)
        state = ctx.step(lambda _: client.read_leases(key=event["key"])["holder"], name="two")
        return [first, lease.fence, state, replays]

    return with_lease(ctx, client, event["key"], work)


def short(event: dict, ctx: DurableContext):
    return with_lease(ctx, client, event["key"], lambda _: "worked", park_seconds=1)


def failing(event: dict, ctx: DurableContext):
    def work(_):
        pause(ctx)
        raise RuntimeError("no such order")

    return with_lease(ctx, client, event["key"], work)


def checking(event: dict, ctx: DurableContext):
    def work(lease):
        while True:
            lease.check()
            pause(ctx)

    return with_lease(ctx, client, event["key"], work, replace="running", grace_seconds=0)


def rated(event: dict, ctx: DurableContext):
    terms = {"limit": 1, "per": "2s", "settle": True}
    rate(ctx, client, event["key"], **terms)
    start = rate(ctx, client, event["key"], **terms)
    pause(ctx)
    return start.settle({"requests": 1})


@durable_execution
def handler(event: dict, ctx: DurableContext):
    global replays
    replays += 1
    try:
        return globals()[event["work"]](event, ctx)
    except HoldfastError as error:
        return {**error.fields, "class": type(error).__name__}
