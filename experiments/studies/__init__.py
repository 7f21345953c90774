"""How the defaults of the estimators were found."""
