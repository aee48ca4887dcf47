"""Where each measure comes from, so that a reader can check the method."""

from __future__ import annotations

from collections.abc import Iterable

_SKINNER_ELLIOT = (
    "Skinner, C. J. and Elliot, M. J. (2002). A measure of disclosure risk for microdata. "
    "Journal of the Royal Statistical Society B 64(4), 855–867. doi:10.1111/1467-9868.00365"
)
_BETHLEHEM = (
    "Bethlehem, J. G., Keller, W. J. and Pannekoek, J. (1990). Disclosure control of microdata. "
    "Journal of the American Statistical Association 85(409), 38–45. doi:10.1080/01621459.1990.10475304"
)
_SAMARATI_SWEENEY = (
    "Samarati, P. and Sweeney, L. (1998). Protecting privacy when disclosing information: k-anonymity and "
    "its enforcement through generalization and suppression. Technical report SRI-CSL-98-04, SRI "
    "International."
)
_SWEENEY = (
    "Sweeney, L. (2002). k-anonymity: a model for protecting privacy. International Journal of Uncertainty, "
    "Fuzziness and Knowledge-Based Systems 10(5), 557–570. doi:10.1142/S0218488502001648"
)

REFERENCES: dict[str, tuple[str, ...]] = {
    "uniqueness": (_BETHLEHEM, _SKINNER_ELLIOT),
    "k_anonymity": (_SAMARATI_SWEENEY, _SWEENEY),
    "reidentification": (
        "El Emam, K. and Dankar, F. K. (2008). Protecting privacy using k-anonymity. Journal of the American "
        "Medical Informatics Association 15(5), 627–637. doi:10.1197/jamia.M2716",
    ),
    "l_diversity": (
        "Machanavajjhala, A., Kifer, D., Gehrke, J. and Venkitasubramaniam, M. (2007). l-diversity: privacy "
        "beyond k-anonymity. ACM Transactions on Knowledge Discovery from Data 1(1), article 3. "
        "doi:10.1145/1217299.1217302",
    ),
    "t_closeness": (
        "Li, N., Li, T. and Venkatasubramanian, S. (2007). t-closeness: privacy beyond k-anonymity and "
        "l-diversity. IEEE International Conference on Data Engineering, 106–115. "
        "doi:10.1109/ICDE.2007.367856",
    ),
    "alpha_k": (
        "Wong, R. C.-W., Li, J., Fu, A. W.-C. and Wang, K. (2006). (α, k)-anonymity: an enhanced k-anonymity "
        "model for privacy preserving data publishing. ACM SIGKDD, 754–759. doi:10.1145/1150402.1150499",
    ),
    "beta_likeness": (
        "Cao, J. and Karras, P. (2012). Publishing microdata with a robust privacy guarantee. Proceedings of "
        "the VLDB Endowment 5(11), 1388–1399. doi:10.14778/2350229.2350255",
    ),
    "delta_disclosure": (
        "Brickell, J. and Shmatikov, V. (2008). The cost of privacy: destruction of data-mining utility in "
        "anonymized data publishing. ACM SIGKDD, 70–78. doi:10.1145/1401890.1401904",
    ),
    "k_map": (_SWEENEY,),
    "delta_presence": (
        "Nergiz, M. E., Atzori, M. and Clifton, C. (2007). Hiding the presence of individuals from shared "
        "databases. ACM SIGMOD, 665–676. doi:10.1145/1247480.1247554",
    ),
    "key_contributions": (
        "Motwani, R. and Xu, Y. (2007). Efficient algorithms for masking and finding quasi-identifiers. "
        "Conference on Very Large Data Bases (VLDB).",
    ),
}
"""Citations by measure name."""


def citations(measures: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the citations of the named measures that have one, in the order given, each measure once.

    Examples
    --------
    >>> list(citations(["k_map", "something_new", "k_map"]))
    ['k_map']
    """
    return {name: REFERENCES[name] for name in dict.fromkeys(measures) if name in REFERENCES}
