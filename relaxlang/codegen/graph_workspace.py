"""Graphs whose workspace has a limit: storages that are not needed at one time share bytes, as far as that helps."""

from __future__ import annotations

from relaxlang.base.record import replace
from relaxlang.codegen.aot.plan import Workspace, plan_workspace
from relaxlang.passes.relax.check_workspace import refuse_workspace
from relaxlang.runtime.graph import Graph
from relaxlang.runtime.memory import ALIGNMENT


def fitted(graph: Graph, limit: int) -> Graph:
    """The graph with at most `limit` bytes of workspace: as it is when it fits, else with all its storages, but for
    those of outputs, placed in one. RLX5034, with what is alive when most is needed, when it does not fit then."""
    if graph.workspace_bytes <= limit:
        return graph
    plan = plan_workspace(graph, {}, ALIGNMENT)
    made = _placed(graph, plan)
    check_plan(graph.name, plan, made.workspace_bytes - plan.size, limit)
    return made


def check_plan(name: str, plan: Workspace, outputs: int, limit: int) -> None:
    """RLX5034 when a function's plan and `outputs` more bytes are over the limit."""
    if plan.size + outputs > limit:
        alive = [f"{p.block.size:,} bytes: {p.block.name}" for p in sorted(plan.alive[1], key=lambda p: -p.block.size)]
        more = [f"{outputs:,} bytes: outputs"] if outputs else []
        refuse_workspace(name, plan.size + outputs, limit, (*alive, *more))


def _placed(graph: Graph, plan: Workspace) -> Graph:
    """The graph with the storages of a plan as parts of one, the last."""
    kept = [at for at in range(len(graph.storage)) if at not in plan.storages]
    place = {old: new for new, old in enumerate(kept)}
    tensors = tuple(
        replace(t, storage=len(kept), offset=t.offset + plan.storages[t.storage])
        if t.storage in plan.storages
        else replace(t, storage=place[t.storage])
        for t in graph.tensors
    )
    return replace(graph, storage=(*(graph.storage[at] for at in kept), plan.size), tensors=tensors)
