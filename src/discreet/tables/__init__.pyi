from discreet.formula import Formula as Formula
from discreet.formula import Term as Term
from discreet.tables import gauss as gauss
from discreet.tables import poisson as poisson
from discreet.tables.cell_key import CellKey as CellKey
from discreet.tables.cell_key import PerturbationTable as PerturbationTable
from discreet.tables.cell_key import perturbation_table as perturbation_table
from discreet.tables.controlled_rounding import ControlledRounding as ControlledRounding
from discreet.tables.count_synthesis import NegativeBinomialSynthesis as NegativeBinomialSynthesis
from discreet.tables.count_synthesis import PoissonInverseGaussianSynthesis as PoissonInverseGaussianSynthesis
from discreet.tables.count_synthesis import PoissonSynthesis as PoissonSynthesis
from discreet.tables.count_synthesis import expanded as expanded
from discreet.tables.counting_rules import GroupDisclosure as GroupDisclosure
from discreet.tables.counting_rules import KDisclosure as KDisclosure
from discreet.tables.counting_rules import MinimumContributors as MinimumContributors
from discreet.tables.counting_rules import Ones as Ones
from discreet.tables.counting_rules import Threshold as Threshold
from discreet.tables.counting_rules import Zeros as Zeros
from discreet.tables.dimension import Dimension as Dimension
from discreet.tables.feasibility_intervals import Protection as Protection
from discreet.tables.information_loss import information_loss as information_loss
from discreet.tables.invariants import invariant_violations as invariant_violations
from discreet.tables.log_linear_tables import fit_log_linear as fit_log_linear
from discreet.tables.noisy_counts import MultinomialDirichletSynthesis as MultinomialDirichletSynthesis
from discreet.tables.noisy_counts import NoisyCounts as NoisyCounts
from discreet.tables.noisy_counts import epsilon_meaning as epsilon_meaning
from discreet.tables.primary_rules import Custom as Custom
from discreet.tables.primary_rules import Listed as Listed
from discreet.tables.primary_rules import Rule as Rule
from discreet.tables.primary_rules import primary as primary
from discreet.tables.putative_links import putative_links as putative_links
from discreet.tables.random_rounding import RandomRounding as RandomRounding
from discreet.tables.random_rounding import SmallCountRounding as SmallCountRounding
from discreet.tables.release_levels import (
    ReleaseCheck as ReleaseCheck,
)
from discreet.tables.release_levels import (
    ReleaseLevel as ReleaseLevel,
)
from discreet.tables.release_levels import (
    check_release as check_release,
)
from discreet.tables.replication import replication_audit as replication_audit
from discreet.tables.replication import trajectories as trajectories
from discreet.tables.replication import unit_concentration as unit_concentration
from discreet.tables.share_rules import PQ as PQ
from discreet.tables.share_rules import Dominance as Dominance
from discreet.tables.share_rules import PPercent as PPercent
from discreet.tables.share_rules import RequestRule as RequestRule
from discreet.tables.simulation_runs import RunningSummary as RunningSummary
from discreet.tables.simulation_runs import monte_carlo_summary as monte_carlo_summary
from discreet.tables.table import Table as Table
from discreet.tables.table_audit import Audit as Audit
from discreet.tables.table_audit import audit as audit
from discreet.tables.table_cells import equations as equations
from discreet.tables.table_protection import ProtectedTable as ProtectedTable
from discreet.tables.table_protection import TableProtection as TableProtection
from discreet.tables.table_reconstruction import Reconstruction as Reconstruction
from discreet.tables.table_reconstruction import reconstruct as reconstruct
from discreet.tables.table_suppression import Suppression as Suppression
from discreet.tables.table_suppression import SuppressionResult as SuppressionResult
