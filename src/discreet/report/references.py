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

_JIANG = (
    "Jiang, Y., Mosquera, L., Jiang, B., Kong, L. and El Emam, K. (2022). Measuring re-identification risk using a "
    "synthetic estimator to enable data sharing. PLoS ONE 17(6), e0269097. doi:10.1371/journal.pone.0269097"
)
_DANKAR = (
    "Dankar, F. K., El Emam, K., Neisa, A. and Roffey, T. (2012). Estimating the re-identification risk of clinical "
    "data sets. BMC Medical Informatics and Decision Making 12, 66. doi:10.1186/1472-6947-12-66"
)
_RAAB = (
    "Raab, G. M. (2024). Privacy risk from synthetic data: practical proposals. Privacy in Statistical Databases.",
    "Raab, G. M., Nowok, B. and Dibben, C. (2024). Practical privacy metrics for synthetic data. arXiv:2406.16826",
)
_KOLB = "Kolb, Tang and Giessing (2024). Synthetic data: comparing utility and risk in microdata and tables."
_COHEN_NISSIM = (
    "Cohen, A. and Nissim, K. (2020). Towards formalizing the GDPR's notion of singling out. Proceedings of the "
    "National Academy of Sciences 117(15), 8344–8352. doi:10.1073/pnas.1914598117"
)

_SNOKE = (
    "Snoke, J., Raab, G. M., Nowok, B., Dibben, C. and Slavkovic, A. (2018). General and specific utility measures for "
    "synthetic data. Journal of the Royal Statistical Society A 181(3), 663–688. doi:10.1111/rssa.12358"
)
_RAAB_UTILITY = (
    "Raab, G. M., Nowok, B. and Dibben, C. (2021). Assessing, visualizing and improving the utility of synthetic data. "
    "arXiv:2109.12717"
)
_KARR = (
    "Karr, A. F., Kohnen, C. N., Oganian, A., Reiter, J. P. and Sanil, A. P. (2006). A framework for evaluating the "
    "utility of data altered to protect confidentiality. The American Statistician 60(3), 224–232. "
    "doi:10.1198/000313006X124640"
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
    "individual": (
        "Benedetti, R. and Franconi, L. (1998). Statistical and technological solutions for controlled data "
        "dissemination. New Techniques and Technologies for Statistics, Sorrento, vol. 1, 225–232.",
        "Polettini, S. (2003). Some remarks on the individual risk methodology. Joint ECE/Eurostat work session on "
        "statistical data confidentiality, Luxembourg.",
    ),
    "special_uniques": (
        "Elliot, M. J., Manning, A. M. and Ford, R. W. (2002). A computational algorithm for handling the special "
        "uniques problem. International Journal of Uncertainty, Fuzziness and Knowledge-Based Systems 10(5), 493–509.",
        "Manning, A. M., Haglin, D. J. and Keane, J. A. (2008). A recursive search algorithm for statistical "
        "disclosure assessment. Data Mining and Knowledge Discovery 16(2), 165–196.",
        _SKINNER_ELLIOT,
    ),
    "unsafe_combinations": (
        "Willenborg, L. and de Waal, T. (2001). Elements of statistical disclosure control. Springer, Lecture Notes in "
        "Statistics 155.",
    ),
    "population": (_JIANG, _DANKAR),
    "known_population": (_JIANG,),
    "log_linear": (
        "Skinner, C. and Shlomo, N. (2008). Assessing identification risk in survey microdata using log-linear models. "
        "Journal of the American Statistical Association 103(483), 989–1001.",
    ),
    "isolation": (_COHEN_NISSIM,),
    "overlapping_tables": (_COHEN_NISSIM,),
    "attribution": (
        "Elliot, M. (2014). Final report on the disclosure risk associated with the synthetic data produced by the "
        "SYLLS team. University of Manchester.",
        "Taub, J., Elliot, M., Pampaka, M. and Smith, D. (2018). Differential correct attribution probability for "
        "synthetic data: an exploration. Privacy in Statistical Databases, Lecture Notes in Computer Science 11126.",
    ),
    "disclosure": _RAAB,
    "attribute_disclosure": _RAAB,
    "replicated_uniques": _RAAB,
    "replicated_special_uniques": (_KOLB,),
    "group_disclosure": (_KOLB,),
    "neighbours": (
        "Yoon, J., Drumright, L. N. and van der Schaar, M. (2020). Anonymization through data synthesis using "
        "generative adversarial networks (ADS-GAN). IEEE Journal of Biomedical and Health Informatics 24(8), "
        "2378–2388.",
    ),
    "near_copies": (
        "Park, N. et al. (2018). Data synthesis based on generative adversarial networks. Proceedings of the VLDB "
        "Endowment 11(10), 1071–1083 (distance to the closest record).",
        "Good, I. J. (1953). The population frequencies of species and the estimation of population parameters. "
        "Biometrika 40(3-4), 237–264.",
    ),
    "linkage": (
        "Fellegi, I. P. and Sunter, A. B. (1969). A theory for record linkage. Journal of the American Statistical "
        "Association 64(328), 1183–1210.",
        "Templ, M. and Meindl, B. (2008). Robust statistics meets SDC: new disclosure risk measures for continuous "
        "microdata masking. Privacy in Statistical Databases, Lecture Notes in Computer Science 5262.",
    ),
    "spatial_k": (
        "Hampton, K. H. et al. (2010). Mapping health data: improved privacy protection with donut method geomasking. "
        "American Journal of Epidemiology 172(9), 1062–1069.",
    ),
    "outliers": (
        "Trindade, C., Antunes, L., Carvalho, T. and Moniz, N. (2024). Synthetic data outliers: navigating identity "
        "disclosure. Privacy in Statistical Databases.",
    ),
    "series": ("Navarro-Arribas, G. and Torra, V. Attribute disclosure risk in smart meter data.",),
    "differencing": (
        "Ganta, S. R., Kasiviswanathan, S. P. and Smith, A. (2008). Composition attacks and auxiliary information in "
        "data privacy. ACM SIGKDD, 265–273.",
        "Duke-Williams, O. and Rees, P. (1998). Can census offices publish statistics for more than one small area "
        "geography? International Journal of Geographical Information Science 12(6), 579–605.",
    ),
    "margins": (_RAAB_UTILITY,),
    "tabular": (
        "Voas, D. and Williamson, P. (2001). Evaluating goodness-of-fit measures for synthetic microdata. Geographical "
        "and Environmental Modelling 5(2), 177–200.",
        _RAAB_UTILITY,
    ),
    "pmse": (
        "Woo, M.-J., Reiter, J. P., Oganian, A. and Karr, A. F. (2009). Global measures of data utility for microdata "
        "masked for disclosure limitation. Journal of Privacy and Confidentiality 1(1), 111–124.",
        _SNOKE,
    ),
    "pmse_logit": (_SNOKE,),
    "compare_model": (_KARR, _SNOKE),
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
