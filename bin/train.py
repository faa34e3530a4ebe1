"""Training: makes a new model, or trains the champion of a model on the games it has played.

    seraphim train NAME --init --game=hex    # models/NAME, with random weights
    seraphim train NAME                      # reads gamedata/NAME, publishes a snapshot, makes it the champion

TensorBoard shows models/NAME/logs.
"""

try:
    from seraphim import cli
    from seraphim.training.command import define_command
except ModuleNotFoundError as error:
    raise SystemExit(f"train.py: {error}: source .venv/bin/activate, or run make setup first") from None
except KeyboardInterrupt:
    raise SystemExit(130) from None

main = define_command()

if __name__ == "__main__":
    cli.run(main)
