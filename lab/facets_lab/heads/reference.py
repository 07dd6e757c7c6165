"""The output layers word by word and position by position, as the equations stand: slow and obvious, for tests."""

import torch
from torch import Tensor
from torch.nn import functional

from facets_lab.heads.layers import PADDING, Head, ReadAgain, piecewise_linear


def reference_head(head: Head, states: list[Tensor], inputs_BL: Tensor, read_again: ReadAgain) -> Tensor:
    """What ``head(states, inputs_BL, read_again)`` is, ``[B, L, V]``; padding has ``-inf``."""
    places = range(inputs_BL.shape[1])
    rows = [
        torch.stack([_position(head, states, inputs_BL[b], at=(b, t), read_again=read_again) for t in places])
        for b in range(len(inputs_BL))
    ]
    return torch.stack(rows)


def _position(
    head: Head, states: list[Tensor], inputs_L: Tensor, *, at: tuple[int, int], read_again: ReadAgain
) -> Tensor:
    """Log-probabilities of all words at one position, ``[V]``."""
    config = head.config
    words = range(PADDING + 1, len(head.words_VH))
    query_Q = _query(head, states, *at)
    if config.source == "layers":
        facets = [linear(states[-1 - k][at]) for k, linear in enumerate(head.facets)]
    else:
        facets = [linear(query_Q) for linear in head.facets]
    prior_S = head.prior(query_Q).softmax(dim=0) if head.prior is not None else torch.ones(1, dtype=query_Q.dtype)
    if config.mixture == "contexts":
        facets, prior_S = [sum(prior_S[k] * facet for k, facet in enumerate(facets))], torch.ones(1).to(query_Q)
    logits = [[facet @ head.words_VH[x] for x in words] for facet in facets]
    logits[0] = _first(head, facets[0], query_Q, read=(states, inputs_L, at))
    logits[0] = _second(head, logits[0], query_Q, at=(*at, len(inputs_L)), read_again=read_again)
    logits = [[_curve(head, logit) for logit in row] for row in logits]
    if config.mixture == "words":
        gates_VS = _gates(head, query_Q)
        single = torch.stack(
            [sum(gates_VS[x][k] * row[i] for k, row in enumerate(logits)) for i, x in enumerate(words)]
        )
        log_probabilities = single - single.exp().sum().log()
    elif config.mixture == "largest":
        single = torch.stack([torch.stack(column).max() for column in zip(*logits, strict=True)])
        log_probabilities = single - single.exp().sum().log()
    else:  # eq. 2.2
        each = [torch.stack(row).exp() / torch.stack(row).exp().sum() for row in logits]
        log_probabilities = (torch.stack(each, dim=1) @ prior_S).log()
    return torch.cat((log_probabilities.new_full((1,), float("-inf")), log_probabilities))


def _query(head: Head, states: list[Tensor], b: int, t: int) -> Tensor:
    """Eq. 2.3, or the last state."""
    if head.block is None:
        return states[-1][b, t]
    zero = torch.zeros_like(states[-1][b, 0])
    seen = [layer[b, t - i] if t >= i else zero for layer in states[-3:] for i in range(3)]
    return torch.cat((states[-1][b, t], functional.gelu(head.block(torch.cat(seen)))))


def _first(
    head: Head, facet_H: Tensor, query_Q: Tensor, *, read: tuple[list[Tensor], Tensor, tuple[int, int]]
) -> list[Tensor]:
    """Products of the first softmax, word by word: eq. 2.4, 2.8, 2.5, 2.10, 2.11."""
    states, inputs_L, (b, t) = read
    words_VH = head.words_VH
    numbers = range(PADDING + 1, len(words_VH))
    by_part = [facet_H, *(linear(query_Q) for linear in head.partitions)]
    logits = {x: by_part[x % len(by_part)] @ words_VH[x] for x in numbers}
    for size, linear in reversed(list(zip(head.config.rerankers, head.rerankers, strict=True))):
        top = sorted(numbers, key=lambda x: -float(logits[x].detach()))[:size]
        logits |= {x: linear(query_Q) @ words_VH[x] for x in top}
    context = [int(x) for x in inputs_L[: t + 1]]
    for x in set(context) - {PADDING}:
        if head.context is not None:
            logits[x] = head.context(query_Q) @ words_VH[x]
        elif head.local_query is not None:
            logits[x] = facet_H @ words_VH[x]
        if head.local_query is not None and head.local_words is not None:
            places = [head.local_words(_query(head, states, b, i)) for i, word in enumerate(context) if word == x]
            logits[x] = logits[x] + head.local_query(query_Q) @ torch.stack(places).mean(dim=0)
    return [logits[x] for x in numbers]


def _second(
    head: Head, logits: list[Tensor], query_Q: Tensor, *, at: tuple[int, int, int], read_again: ReadAgain
) -> list[Tensor]:
    """Section 2.4.1.3: the likeliest words once more, their vectors updated by the states that read them."""
    if head.again_query is None or head.again_words is None:
        return logits
    facet_H = head.again_query(query_Q)
    best = sorted(range(len(logits)), key=lambda i: -float(logits[i].detach()))[: head.config.second_stage]
    candidates = torch.tensor([i + PADDING + 1 for i in best])
    b, t, length = at
    facets = torch.stack([facet_H] * (b + 1) * length).view(b + 1, length, -1)  # the network is asked at (b, t) alone
    states_RH = read_again(facets, candidates.expand(b + 1, length, -1))[b, t]
    logits = list(logits)
    for i, state_H in zip(best, states_RH, strict=True):
        logits[i] = (head.words_VH[i + PADDING + 1] + head.again_words(state_H)) @ facet_H
    return logits


def _curve(head: Head, logit: Tensor) -> Tensor:
    config = head.config
    if config.curve == "gss":  # Parthiban 2020, eq. 4.14
        above = logit - config.curve_start
        return config.curve_slope * above + config.curve_start - (config.curve_slope - 1) * (above.exp() + 1).log()
    if head.slopes is None:
        return logit
    return piecewise_linear(logit, functional.softplus(head.slopes))


def _gates(head: Head, query_Q: Tensor) -> list[list[Tensor]]:
    """Parthiban 2020, eq. 3.11 and 3.12, of every word."""
    assert head.gates is not None
    gates = head.gates
    states = gates.of_states(query_Q).tanh().chunk(3)
    result = []
    for x, word in enumerate(gates.of_words.weight):
        g = [torch.sigmoid(word @ states[k] + gates.of_all(query_Q)[k] + gates.of_each[x, k]) for k in range(3)]
        result.append([g[0] * g[1], g[0] * (1 - g[1]), (1 - g[0]) * g[2], (1 - g[0]) * (1 - g[2])])
    return result
