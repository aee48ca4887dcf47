"""Works that several methods cite; what only one cites stands on its card."""

from __future__ import annotations

COHEN_NISSIM_2020 = (
    "Cohen, A. and Nissim, K. (2020). Towards formalizing the GDPR's notion of singling out. Proceedings of "
    "the National Academy of Sciences 117(15), 8344–8352. doi:10.1073/pnas.1914598117"
)
DALENIUS_REISS_1982 = (
    "Dalenius, T. and Reiss, S. P. (1982). Data-swapping: a technique for disclosure control. Journal of "
    "Statistical Planning and Inference 6(1), 73–85."
)
HUNDEPOOL_2012 = (
    "Hundepool, A. et al. (2012). Statistical disclosure control. Wiley. doi:10.1002/9781118348239"
)
JIANG_2022 = (
    "Jiang, Y., Mosquera, L., Jiang, B., Kong, L. and El Emam, K. (2022). Measuring re-identification risk "
    "using a synthetic estimator to enable data sharing. PLoS ONE 17(6), e0269097. "
    "doi:10.1371/journal.pone.0269097"
)
KOLB_2024 = (
    "Kolb, Tang and Giessing (2024). Synthetic data: comparing utility and risk in microdata and tables."
)
RAAB_2021 = (
    "Raab, G. M., Nowok, B. and Dibben, C. (2021). Assessing, visualizing and improving the utility of "
    "synthetic data. arXiv:2109.12717"
)
RAAB_2024 = (
    "Raab, G. M. (2024). Privacy risk from synthetic data: practical proposals. Privacy in Statistical "
    "Databases."
)
RAAB_NOWOK_DIBBEN_2024 = (
    "Raab, G. M., Nowok, B. and Dibben, C. (2024). Practical privacy metrics for synthetic data. "
    "arXiv:2406.16826"
)
SAMARATI_SWEENEY_1998 = (
    "Samarati, P. and Sweeney, L. (1998). Protecting privacy when disclosing information: k-anonymity and "
    "its enforcement through generalization and suppression. Technical report SRI-CSL-98-04, SRI "
    "International."
)
SKINNER_ELLIOT_2002 = (
    "Skinner, C. J. and Elliot, M. J. (2002). A measure of disclosure risk for microdata. Journal of the "
    "Royal Statistical Society B 64(4), 855–867. doi:10.1111/1467-9868.00365"
)
SNOKE_2018 = (
    "Snoke, J., Raab, G. M., Nowok, B., Dibben, C. and Slavkovic, A. (2018). General and specific utility "
    "measures for synthetic data. Journal of the Royal Statistical Society A 181(3), 663–688. "
    "doi:10.1111/rssa.12358"
)
SWEENEY_2002 = (
    "Sweeney, L. (2002). k-anonymity: a model for protecting privacy. International Journal of Uncertainty, "
    "Fuzziness and Knowledge-Based Systems 10(5), 557–570. doi:10.1142/S0218488502001648"
)
FRANCIS_2024 = (
    "Francis, P. (2024). A comparison of SynDiffix multi-table versus single-table synthetic data. "
    "arXiv:2403.08463."
)
PATKI_2016 = (
    "Patki, N., Wedge, R. and Veeramachaneni, K. (2016). The synthetic data vault. IEEE International Conference "
    "on Data Science and Advanced Analytics, 399–410."
)
