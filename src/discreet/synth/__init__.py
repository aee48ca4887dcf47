"""Make synthetic microdata: records of nobody that analyses can be tried on."""
