"""What is installed, how fast it is, and whether models and game data are intact.

In dependency order:

    data_checks     checks model and game-data folders
    installation    versions, processor, runtimes
    benchmark       the speed of search and self-play, and where the time goes
    doctor          runs every check and prints what to do
"""
