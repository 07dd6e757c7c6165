"""Coefficient solver against SciPy and RMSprop: ``python -m benchmarks.coding``; JSON on standard output.

All solve the same problems of eq. 3.1, one training step's worth by default: 256 texts, 30 words of their own and 30
negatives each. Times are CPU seconds, so that other work on the machine does not count, and include the products with
the D-dimensional vectors. "At equal objective" means that ours runs just as many sweeps as it needs to get as low as
the competitor (within 1e-5 of its objective, the rounding of float32).

Shape suffixes: B texts, K facets, N targets, D dimensions.
"""

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.nn import functional

from benchmarks.measuring import print_report
from facets.coding import gram_and_correlations, kkt_residual, reconstruction_error, solve_coefficients
from facets.coding.reference import reference_coefficients, rmsprop_coefficients

_ROUNDING = 1e-5
_MAX_SWEEPS = 100
_RMSPROP_DECAY, _RMSPROP_EPSILON = 0.99, 1e-8  # as in torch.optim.RMSprop

Solve = Callable[[Tensor, Tensor], Tensor]


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=256)
    parser.add_argument("--facets", type=int, default=10)
    parser.add_argument("--targets", type=int, default=60)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--l1-weight", type=float, default=0.4)
    parser.add_argument("--repeats", type=int, default=5, help="the fastest counts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--scipy-texts", type=int, default=2, help="texts the SciPy loops solve; they are slow")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    facets_BKD, targets_BND = make_problem(options.texts, options.facets, options.targets, options.dim)
    report = measure(facets_BKD, targets_BND, options.l1_weight, options.repeats, options.scipy_texts)
    report["parameters"] = vars(options)
    print_report(report)


def make_problem(num_texts: int, num_facets: int, num_targets: int, dim: int) -> tuple[Tensor, Tensor]:
    """Facets with pairwise cosines of about 0.2 to 0.5 and unit targets near some of them, as in training."""
    generator = torch.Generator().manual_seed(1)
    common_B1D = functional.normalize(torch.randn(num_texts, 1, dim, generator=generator), dim=-1)
    own_BKD = functional.normalize(torch.randn(num_texts, num_facets, dim, generator=generator), dim=-1)
    share_BK1 = 0.2 + 0.3 * torch.rand(num_texts, num_facets, 1, generator=generator)
    lengths_BK1 = 0.4 + 0.5 * torch.rand(num_texts, num_facets, 1, generator=generator)
    facets_BKD = lengths_BK1 * (share_BK1.sqrt() * common_B1D + (1 - share_BK1).sqrt() * own_BKD)
    # A target mixes a few facets with noise: [B, N, K] @ [B, K, D]
    mixture_BNK = torch.rand(num_texts, num_targets, num_facets, generator=generator) ** 6
    noise_BND = torch.randn(num_texts, num_targets, dim, generator=generator) * dim**-0.5
    return facets_BKD, functional.normalize(mixture_BNK @ facets_BKD + 1.2 * noise_BND, dim=-1)


def measure(
    facets_BKD: Tensor, targets_BND: Tensor, l1_weight: float, repeats: int, num_scipy_texts: int
) -> dict[str, object]:
    """CPU seconds and mean objective a target of every solver, and how many times faster ours is."""
    num_targets = facets_BKD.shape[0] * targets_BND.shape[1]
    gram_BKK, correlations_BKN = gram_and_correlations(facets_BKD, targets_BND)

    def mean_objective(coefficients_BKN: Tensor) -> float:
        ones_BN = torch.ones(targets_BND.shape[:2], dtype=torch.float64)
        errors_B = reconstruction_error(
            coefficients_BKN.double(), gram_BKK.double(), correlations_BKN.double(), weights_BN=ones_BN
        )
        return float(errors_B.sum() + l1_weight * coefficients_BKN.double().sum()) / num_targets

    def ours(max_sweeps: int) -> Solve:
        return lambda facets, targets: _ours(facets, targets, l1_weight, max_sweeps)

    seconds, coefficients_BKN = _fastest(ours(_MAX_SWEEPS), facets_BKD, targets_BND, repeats)
    report: dict[str, object] = {
        "problem": _describe(facets_BKD, targets_BND),
        "ours": {
            "seconds": seconds,
            "targets_per_second": num_targets / seconds,
            "objective": mean_objective(coefficients_BKN),
            "kkt_residual": kkt_residual(coefficients_BKN, gram_BKK, correlations_BKN, l1_weight=l1_weight),
        },
    }
    competitors: dict[str, tuple[Solve, int]] = {
        "rmsprop_60": (lambda f, t: rmsprop_coefficients(f, t, l1_weight=l1_weight), len(facets_BKD)),
        "rmsprop_60_gram": (lambda f, t: _rmsprop_gram(f, t, l1_weight), len(facets_BKD)),
        "scipy_loop": (lambda f, t: _scipy_loop(f, t, l1_weight), num_scipy_texts),
        "scipy_loop_gram": (lambda f, t: _scipy_gram_loop(f, t, l1_weight), num_scipy_texts),
    }
    for name, (solve, num_texts) in competitors.items():
        own_repeats = repeats if num_texts == len(facets_BKD) else 1
        theirs, solution = _fastest(solve, facets_BKD[:num_texts], targets_BND[:num_texts], own_repeats)
        theirs *= len(facets_BKD) / num_texts
        goal = _objective_of(facets_BKD[:num_texts], targets_BND[:num_texts], solution, l1_weight)
        sweeps, reached = _sweeps_to_reach(goal, facets_BKD[:num_texts], targets_BND[:num_texts], l1_weight)
        equal, _ = _fastest(ours(sweeps), facets_BKD, targets_BND, repeats)
        report[name] = {
            "seconds": theirs,
            "objective": goal,
            "ours_sweeps_at_equal_objective": sweeps,
            "ours_objective": reached,
            "ours_seconds_at_equal_objective": equal,
            "ratio_at_equal_objective": theirs / equal,
            "ratio_at_the_optimum": theirs / seconds,
        }
    return report


def _ours(facets_BKD: Tensor, targets_BND: Tensor, l1_weight: float, max_sweeps: int) -> Tensor:
    gram_BKK, correlations_BKN = gram_and_correlations(facets_BKD, targets_BND)
    return solve_coefficients(gram_BKK, correlations_BKN, l1_weight=l1_weight, max_sweeps=max_sweeps)


def _objective_of(facets_BKD: Tensor, targets_BND: Tensor, coefficients_BKN: Tensor, l1_weight: float) -> float:
    """Mean of eq. 3.1 a target, in double precision."""
    coefficients_BKN = coefficients_BKN.double()
    residual_BND = coefficients_BKN.mT @ facets_BKD.double() - targets_BND.double()
    total = residual_BND.square().sum() + l1_weight * coefficients_BKN.sum()
    return float(total) / (targets_BND.shape[0] * targets_BND.shape[1])


def _sweeps_to_reach(goal: float, facets_BKD: Tensor, targets_BND: Tensor, l1_weight: float) -> tuple[int, float]:
    """Fewest sweeps of ours that get as low as ``goal``, and how low they get."""
    for sweeps in range(1, _MAX_SWEEPS + 1):
        solution = _ours(facets_BKD, targets_BND, l1_weight, sweeps)
        reached = _objective_of(facets_BKD, targets_BND, solution, l1_weight)
        if reached <= goal * (1 + _ROUNDING):
            return sweeps, reached
    raise RuntimeError(f"{_MAX_SWEEPS} sweeps reached {reached}, expected {goal}")


def _rmsprop_gram(facets_BKD: Tensor, targets_BND: Tensor, l1_weight: float) -> Tensor:
    """The paper's 60 steps of RMSprop, with the gradient from the Gram matrix instead of ``[B, N, D]`` residuals."""
    gram_BKK, correlations_BKN = gram_and_correlations(facets_BKD, targets_BND)
    coefficients_BKN = torch.zeros_like(correlations_BKN)
    squares_BKN = torch.zeros_like(correlations_BKN)
    double_gram_BKK, offset_BKN = 2 * gram_BKK, l1_weight - 2 * correlations_BKN
    for _ in range(60):
        gradient_BKN = torch.baddbmm(offset_BKN, double_gram_BKK, coefficients_BKN)
        squares_BKN.mul_(_RMSPROP_DECAY).addcmul_(gradient_BKN, gradient_BKN, value=1 - _RMSPROP_DECAY)
        coefficients_BKN.addcdiv_(gradient_BKN, squares_BKN.sqrt().add_(_RMSPROP_EPSILON), value=-0.05).clamp_(0.0, 1.0)
    return coefficients_BKN


def _scipy_loop(facets_BKD: Tensor, targets_BND: Tensor, l1_weight: float) -> Tensor:
    solutions = [
        reference_coefficients(facets_KD.numpy(), targets_ND.numpy(), l1_weight=l1_weight)
        for facets_KD, targets_ND in zip(facets_BKD, targets_BND, strict=True)
    ]
    return torch.from_numpy(np.stack(solutions))


def _scipy_gram_loop(facets_BKD: Tensor, targets_BND: Tensor, l1_weight: float) -> Tensor:
    """A SciPy loop as fast as it gets: the Gram matrix, default tolerances."""
    gram_BKK, correlations_BKN = (x.double().numpy() for x in gram_and_correlations(facets_BKD, targets_BND))
    bounds = [(0.0, 1.0)] * gram_BKK.shape[1]
    solutions = np.zeros(correlations_BKN.shape)
    for b, gram_KK in enumerate(gram_BKK):
        for n, correlations_K in enumerate(correlations_BKN[b].T):
            offset_K = l1_weight - 2 * correlations_K

            def value_and_gradient(
                m_K: np.ndarray, gram_KK: np.ndarray = gram_KK, offset_K: np.ndarray = offset_K
            ) -> tuple[float, np.ndarray]:
                product_K = gram_KK @ m_K
                return float(m_K @ product_K + offset_K @ m_K), 2 * product_K + offset_K

            start_K = np.full(len(gram_KK), 0.5)
            solutions[b, :, n] = minimize(value_and_gradient, start_K, jac=True, method="L-BFGS-B", bounds=bounds).x
    return torch.from_numpy(solutions)


def _fastest(solve: Solve, facets_BKD: Tensor, targets_BND: Tensor, repeats: int) -> tuple[float, Tensor]:
    """CPU seconds of the fastest run, and its solution."""
    fastest = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        solution_BKN = solve(facets_BKD, targets_BND)
        fastest = min(fastest, time.process_time() - start)
    return fastest, solution_BKN


def _describe(facets_BKD: Tensor, targets_BND: Tensor) -> dict[str, float]:
    units_BKD = functional.normalize(facets_BKD, dim=-1)
    num_facets = facets_BKD.shape[1]
    cosines_BKK = units_BKD @ units_BKD.mT
    pairs = facets_BKD.shape[0] * num_facets * max(1, num_facets - 1)
    return {
        "mean_cosine_of_facets": float((cosines_BKK.sum() - cosines_BKK.diagonal(dim1=1, dim2=2).sum()) / pairs),
        "mean_best_cosine_of_targets": float((targets_BND @ units_BKD.mT).amax(dim=-1).mean()),
        "mean_length_of_facets": float(facets_BKD.norm(dim=-1).mean()),
    }


if __name__ == "__main__":
    main()
