"""`python -m logsig_fraud.studies` runs the studies of the paper, as `python -m logsig_fraud.studies.paper` does. Written by hand."""
if __name__ == "__main__":
    from logsig_fraud.studies.paper import main
    main()
